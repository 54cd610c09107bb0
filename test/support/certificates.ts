// Created with openssl and valid for a hundred years, except the expired one. Only tests trust their authorities.
import certificates from './certificates.json' with { type: 'json' }

export const testAuthority = certificates.receivers.authority

/**
 * Certificates of the test receiver. Each key names the defect of the certificate. `good` has none, and is
 * valid for receiver.example, *.receiver.example and 127.0.0.1. `wrongName` is valid for other.example only.
 */
export const testCertificates = certificates.receivers.certificates

/** Certificates of cores (valid for localhost and 127.0.0.1) and their clients, signed by two authorities. */
export const coreCertificates = certificates.cores
