import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'

/** Throws or rejects with a `GatewayError`. Returns a promise only if it must wait. */
export type Check = (request: FastifyRequest, reply: FastifyReply) => void | Promise<void>

/**
 * Combines checks into one hook, up to the first failure. It is synchronous while the answers for all
 * checks are cached.
 */
export function inOrder(checks: readonly Check[]) {
  return (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction) => {
    let next = 0
    function run(): void {
      let failure: Error | undefined
      try {
        while (next < checks.length) {
          const pending = checks[next++]!(request, reply)
          if (pending !== undefined) return void pending.then(run, done)
        }
      } catch (error) {
        failure = error as Error
      }
      done(failure)
    }
    run()
  }
}
