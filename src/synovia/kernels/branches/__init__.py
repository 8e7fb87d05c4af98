"""All branches of chains of six joints, by elimination."""
