"""The test bench: a real Kubernetes control plane on loopback, without kubelets.

Rule: tests talk to a real API server through kubeconfig files, as a user would; nothing here imports
vgpuctl, so that the bench cannot share a mistake with what it tests.
"""
