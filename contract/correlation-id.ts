const allowed = /^[A-Za-z0-9._-]{1,64}$/

/** Allowed ids of the header `X-Correlation-Id` (contract, section 1), as a pattern of JSON Schema. */
export const correlationIdPattern: string = allowed.source

/** Returns undefined if the id is not allowed. */
export const validCorrelationId = (given: string): string | undefined => (allowed.test(given) ? given : undefined)
