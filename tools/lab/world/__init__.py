"""`python -m lab world`: the product on Ethereum clients of other makers, where they are at hand."""
