const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

/**
 * Returns true if the error or one of its causes shows that no connection was made. Then nothing
 * was sent.
 */
export function wasNeverSent(error: unknown): boolean {
  return systemCodes(error).some((code) => NEVER_SENT.has(code))
}

/** Returns Node's system error codes, such as ECONNREFUSED, of the error and its causes. */
export function systemCodes(error: unknown): string[] {
  const codes: string[] = []
  let cause = error
  for (let depth = 0; cause instanceof Error && depth < 6; depth++) {
    if ('code' in cause && typeof cause.code === 'string') codes.push(cause.code)
    // Node tries IPv6 and IPv4 addresses and reports both failures as one AggregateError.
    if (cause instanceof AggregateError) {
      for (const each of cause.errors) if (typeof each?.code === 'string') codes.push(each.code)
    }
    cause = cause.cause
  }
  return codes
}
