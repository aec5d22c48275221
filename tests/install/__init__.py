"""Install, upgrade and uninstall against real controllers.

`rig.py` is a cluster as its users have it: Volcano, GPU nodes, nothing of ours. What a bench lacks stands beside it
as doubles that talk to the API server as the real parts do: `kubelet.py` (runs init containers for real, in a
directory for each node), `device_plugin.py` (registers cards, under the rights of its pods' account) and
`scheduler.py`. kwok makes pods run once the kubelet lets them. `contents.py` compares whole clusters, `proxy.py`
counts writes and kills, `webhook.py` refuses.
"""
