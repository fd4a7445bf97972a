"""The gateway's configuration file, and those of the agents that it is installed in."""
