"""The golden record: digests of what the packages give today, so that a change of it is a decision."""
