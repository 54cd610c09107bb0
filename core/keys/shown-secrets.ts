/**
 * Time in milliseconds for which a repeat of the creating call returns a secret in plain text
 * (contract, rule 19).
 */
const shownMs = 600_000

/** Whether a secret that was created at this time is still returned in plain text. */
export const isShown = (createdAt: Date | undefined, at: Date): boolean =>
  createdAt !== undefined && at.getTime() - createdAt.getTime() < shownMs
