"""The state that machines share: its time, its leases, its servers, its moves."""
