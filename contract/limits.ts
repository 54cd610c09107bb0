/** Fixed by the public contract. Gateways enforce them; a core may have lower ones. */
export const contractLimits = {
  bodyMaxLength: 4_000,
  ratingCommentMaxLength: 500,
  historyPageMax: 100,
  /** As JSON, in a request. */
  pageContextSentMaxBytes: 16_384,
  screenshotMaxBytes: 5_242_880,
  /** Of a destination's response, kept with an attempt. */
  responseTextMaxLength: 300,
} as const
