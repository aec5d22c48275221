"""What an installation consists of: its options, its objects, and the record of it in the cluster.

The rule of this package: the objects follow from the options alone. Templates are whole manifests
(templates/install); what differs is set by path, and a path that a template lacks is an error.
"""
