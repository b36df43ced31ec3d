"""Well-known functions of contracts by their signatures."""

from collections.abc import Mapping

# Tokens (LSP-7, LSP-8, ERC-20, ERC-721), followers (LSP-26), ownership (LSP-14); each with the place of the receiver
# among its arguments, -1 for none.
WELL_KNOWN: Mapping[str, int] = {
    "transfer(address,address,uint256,bool,bytes)": 1,
    "transfer(address,address,bytes32,bool,bytes)": 1,
    "transfer(address,uint256)": 0,
    "transferFrom(address,address,uint256)": 1,
    "safeTransferFrom(address,address,uint256)": 1,
    "safeTransferFrom(address,address,uint256,bytes)": 1,
    "transferBatch(address[],address[],uint256[],bool[],bytes[])": -1,
    "transferBatch(address[],address[],bytes32[],bool[],bytes[])": -1,
    "mint(address,uint256,bool,bytes)": 0,
    "mint(address,bytes32,bool,bytes)": 0,
    "mint(address,uint256)": 0,
    "burn(address,uint256,bytes)": -1,
    "burn(bytes32,bytes)": -1,
    "approve(address,uint256)": 0,
    "setApprovalForAll(address,bool)": 0,
    "authorizeOperator(address,uint256,bytes)": 0,
    "authorizeOperator(address,bytes32,bytes)": 0,
    "revokeOperator(address,address,bool,bytes)": 1,
    "revokeOperator(address,bytes32,bool,bytes)": 0,
    "follow(address)": 0,
    "unfollow(address)": 0,
    "followBatch(address[])": -1,
    "unfollowBatch(address[])": -1,
    "transferOwnership(address)": 0,
    "acceptOwnership()": -1,
    "renounceOwnership()": -1,
    "deposit()": -1,
    "withdraw(uint256)": -1,
}
