import com.squareup.moshi.Moshi
import com.squareup.moshi.kotlin.reflect.KotlinJsonAdapterFactory
import java.io.File
import java.math.BigInteger
import org.openapitools.client.models.Quota
import org.openapitools.client.models.UnsignedTransaction

fun main() {
    val moshi = Moshi.Builder().addLast(KotlinJsonAdapterFactory()).build()
    val quota = moshi.adapter(Quota::class.java).fromJson(File("quota.json").readText())!!
    val transaction = moshi.adapter(UnsignedTransaction::class.java).fromJson(File("transaction.json").readText())!!
    check(quota.quota == 1L shl 40 && BigInteger(transaction.nonce) == BigInteger.TWO.pow(130))
    println("kotlin: balance ${quota.quota}, nonce ${transaction.nonce}")
}
