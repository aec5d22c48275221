"""The demo pool as a source: a made-up small company, the same for the same clock.

What it holds is data (templates/demo.yaml); `objects` expands it to Kubernetes objects, `behaviour` is the function of
time that moves its usage, `source` answers every part of the facts.
"""

from vgpuctl.sources.demo.source import Demo

__all__ = ["Demo"]
