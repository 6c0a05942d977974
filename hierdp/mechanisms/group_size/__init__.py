"""Group sizes over a hierarchy: the mechanisms of Fioretto & Van Hentenryck 2019."""

from hierdp.mechanisms.group_size.mechanism import from_table, group_size, m_c_dp, measure, post_process

__all__ = ["from_table", "group_size", "m_c_dp", "measure", "post_process"]
