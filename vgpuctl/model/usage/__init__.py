"""Who uses what: the join of nodes, cards, pods, queues and what monitors and drivers say.

The rule of this package: pure joins from Facts. `pool` and `machine` make Holdings (every node, card and vGPU once),
`arrange` groups, filters and sorts them into a Usage, the output. What nobody told stays None with a reason; a sum
with an unknown part is a lower bound and says so (`memory_partial`, `cores_partial`); an old figure is `stale`.
"""
