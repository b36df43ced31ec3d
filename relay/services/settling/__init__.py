"""From a receipt to the ledger: tracking, settlement, reorganisations, and the comparison with the chain."""
