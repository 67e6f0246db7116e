//! Empty: it lets the package `agentd` depend on itself in tests, which need the feature `fleet`.
