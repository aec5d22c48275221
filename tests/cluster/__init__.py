"""The test bench: a real Kubernetes control plane on loopback, without kubelets.

Rule: tests talk to a real API server through kubeconfig files, as a user would; the bench (all but the test_
files) imports nothing of vgpuctl, so that it cannot share a mistake with what it tests.
"""
