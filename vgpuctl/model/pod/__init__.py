"""Pods as people write them: where pod templates stand in any workload, and the rules that they must keep.

The rule of this package: a template is found once (`template`), and then the same rules hold for it wherever it
stood: a Pod, a Deployment, a Volcano Job or an object that nobody knew when this was written.
"""
