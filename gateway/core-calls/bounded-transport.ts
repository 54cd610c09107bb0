import { Code, ConnectError, type Transport } from '@connectrpc/connect'

/** Limits how many calls run at once. */
export interface CallBudget {
  /** Runs the call. Throws `resource_exhausted` at once if the limit is reached. */
  run<Answer>(call: () => Promise<Answer>): Promise<Answer>
}

export function createCallBudget(max: number): CallBudget {
  let running = 0
  return {
    async run(call) {
      if (running >= max) throw new ConnectError('too many concurrent calls', Code.ResourceExhausted)
      running++
      try {
        return await call()
      } finally {
        running--
      }
    },
  }
}

/** Wraps a transport with a call budget: slow cores cause 503 answers instead of memory growth. */
export function createBoundedTransport(transport: Transport, budget: CallBudget): Transport {
  return {
    unary: (...call) => budget.run(() => transport.unary(...call)),
    stream: (...call) => budget.run(() => transport.stream(...call)),
  }
}
