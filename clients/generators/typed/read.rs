use openapi::models::{Quota, UnsignedTransaction};
use std::fs::read_to_string;

fn main() {
    let quota: Quota = serde_json::from_str(&read_to_string("quota.json").unwrap()).unwrap();
    let transaction: UnsignedTransaction = serde_json::from_str(&read_to_string("transaction.json").unwrap()).unwrap();
    assert!(quota.quota == 1i64 << 40 && transaction.nonce == "1361129467683753853853498429727072845824");
    println!("rust: balance {}, nonce {}", quota.quota, transaction.nonce);
}
