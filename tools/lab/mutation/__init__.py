"""Mutation testing of the code that moves money: each mutant must fail a test."""
