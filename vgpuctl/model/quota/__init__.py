"""Shares of the pool: ResourceQuotas, Volcano Queues and PriorityClasses, as people write them and as teams have them.

The rule of this package: one amount is one `Cap`, wherever it is written, and is read as the API server or Volcano
reads it; what they accept and then ignore is said.
"""
