import { Code, ConnectError, type Transport } from '@connectrpc/connect'

/** Counts what is under way, up to a bound. */
export interface CallBudget {
  /** Runs the call, or throws `resource_exhausted` at once where as many are under way as may be. */
  run<Answer>(call: () => Promise<Answer>): Promise<Answer>
}

export function createCallBudget(max: number): CallBudget {
  let underWay = 0
  return {
    async run(call) {
      if (underWay >= max) throw new ConnectError('too many calls under way', Code.ResourceExhausted)
      underWay++
      try {
        return await call()
      } finally {
        underWay--
      }
    },
  }
}

/** A transport whose calls count in a budget, so that cores that are slow cost answers and not memory. */
export function createBoundedTransport(transport: Transport, budget: CallBudget): Transport {
  return {
    unary: (...call) => budget.run(() => transport.unary(...call)),
    stream: (...call) => budget.run(() => transport.stream(...call)),
  }
}
