/* pki_ossl.h: OpenSSL's headers for pki*.c and tls*.c. OpenSSL has a type named ERR_STATE, which
 * is an error code here: it goes by another name while its headers are read. */
#ifndef MAKESPAN_PROTO_PKI_OSSL_H
#define MAKESPAN_PROTO_PKI_OSSL_H

#define ERR_STATE ossl_err_state
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#undef ERR_STATE

#endif
