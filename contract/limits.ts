/** Limits of the public contract, lengths in code points. Gateways enforce them; cores may have lower ones. */
export const contractLimits = {
  bodyMaxLength: 4_000,
  ratingCommentMaxLength: 500,
  /** The best score of a rating. */
  ratingScoreMax: 5,
  policyVersionMaxLength: 64,
  /** Length of the signed assertion of a visitor's identity. */
  assertionMaxLength: 8_192,
  historyPageMax: 100,
  /** Size as JSON in a request. */
  pageContextSentMaxBytes: 16_384,
  screenshotMaxBytes: 5_242_880,
  /** Text of a destination's response that is kept with an attempt. */
  responseTextMaxLength: 300,
} as const

/** Form of an `Idempotency-Key` and of the id of an operation. */
export const operationIdForm = /^[A-Za-z0-9._:-]{1,128}$/
