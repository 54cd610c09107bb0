import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'

/** A check of a request. Throws or rejects with a `GatewayError`. Returns a promise only if it must wait. */
export type Check = (request: FastifyRequest, reply: FastifyReply) => void | Promise<void>

/** Runs checks in one hook, up to the first failure, synchronously if no check returns a promise. */
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
