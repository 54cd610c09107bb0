/**
 * Why the embedded engine cannot be had:
 * - `held`: another engine holds the folder, and does not answer where ours would
 * - `glibc`: the C library is too old for it, and no newer one could be put beside it
 * - `missing`: its package is not installed, or has no build for this platform
 * - `failed`: it was started and ended, or refused the folder
 */
export type EngineFailure = 'held' | 'glibc' | 'missing' | 'failed'

/** Its message tells what was tried, and that `MONGODB_URI` names a server instead. */
export class EngineError extends Error {
  override readonly name = 'EngineError'
  readonly reason: EngineFailure

  constructor(reason: EngineFailure, message: string, options?: ErrorOptions) {
    super(`${message} Set MONGODB_URI to use a MongoDB server instead.`, options)
    this.reason = reason
  }
}
