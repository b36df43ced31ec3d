"""Small changes to the code that moves money, one at a time: each must turn a test red."""
