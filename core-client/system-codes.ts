const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** Whether no connection was made, so that nothing was sent. */
export function wasNeverSent(error: unknown): boolean {
  return systemCodes(error).some((code) => NEVER_SENT.has(code))
}

/** Says in words that a core does not answer with TLS; undefined for other failures. */
export function tlsFaultOf(error: unknown): string | undefined {
  const isFault = systemCodes(error).some((code) => code === 'EPROTO' || code.startsWith('ERR_SSL_'))
  return isFault
    ? 'the core does not answer with TLS: its URL must begin with http:, or the core needs CORE_TLS_CERT'
    : undefined
}

/** Node's codes, such as ECONNREFUSED, of the error and its causes. */
export function systemCodes(error: unknown): string[] {
  const codes: string[] = []
  let cause = error
  for (let depth = 0; cause instanceof Error && depth < 6; depth++) {
    if ('code' in cause && typeof cause.code === 'string') codes.push(cause.code)
    // The failures of several addresses are in one error.
    if (cause instanceof AggregateError) {
      for (const each of cause.errors) if (typeof each?.code === 'string') codes.push(each.code)
    }
    cause = cause.cause
  }
  return codes
}
