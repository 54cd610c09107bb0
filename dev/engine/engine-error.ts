/**
 * Why there is no engine. `held`: another engine uses the folder, but does not respond at its socket. `glibc`: the
 * C library is too old, and a newer one could not be fetched. `missing`: the package is not installed, or has no
 * build for this platform. `failed`: the engine exited at its start, or rejected the folder.
 */
export type EngineFailure = 'held' | 'glibc' | 'missing' | 'failed'

export class EngineError extends Error {
  override readonly name = 'EngineError'
  readonly reason: EngineFailure

  constructor(reason: EngineFailure, message: string, options?: ErrorOptions) {
    super(`${message} Set MONGODB_URI to use a MongoDB server instead.`, options)
    this.reason = reason
  }
}
