/**
 * Limits that the public contract fixes. The gateways enforce them. A core may have lower limits.
 */
export const contractLimits = {
  /** Maximum number of code points in the text of a visitor's message. */
  bodyMaxLength: 4_000,
  /** Maximum number of code points in the comment of a rating. */
  ratingCommentMaxLength: 500,
  /** Maximum number of messages in a page of the history. */
  historyPageMax: 100,
  /** Maximum size of a page context in a request, as JSON. */
  pageContextSentMaxBytes: 16_384,
  screenshotMaxBytes: 5_242_880,
  /** Maximum number of code points of a destination's response that are kept with an attempt. */
  responseTextMaxLength: 300,
} as const
