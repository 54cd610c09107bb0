/**
 * The reason why the embedded engine is not available:
 *
 * - `held`: another engine uses the data folder, but does not respond at the socket of this folder
 * - `glibc`: the C library is too old, and a newer one could not be fetched
 * - `missing`: the engine's package is not installed, or has no build for this platform
 * - `failed`: the engine exited at its start, or rejected the folder
 */
export type EngineFailure = 'held' | 'glibc' | 'missing' | 'failed'

/** The message states what was tried, and that `MONGODB_URI` can select a server instead. */
export class EngineError extends Error {
  override readonly name = 'EngineError'
  readonly reason: EngineFailure

  constructor(reason: EngineFailure, message: string, options?: ErrorOptions) {
    super(`${message} Set MONGODB_URI to use a MongoDB server instead.`, options)
    this.reason = reason
  }
}
