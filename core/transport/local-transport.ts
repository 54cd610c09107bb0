import { create } from '@bufbuild/protobuf'
import { Code, ConnectError, type Transport } from '@connectrpc/connect'
import type { UnaryMethod } from './dispatcher.ts'

/** A transport for callers in the core's own process. Unary calls are function calls. */
export function localTransport(find: (name: string) => UnaryMethod | undefined, streams: Transport): Transport {
  return {
    stream: (...call) => streams.stream(...call),

    async unary(method, signal, timeoutMs, header, input) {
      const found = find(`${method.parent.typeName}/${method.name}`)
      if (!found) throw new ConnectError('unknown method', Code.Unimplemented)
      const ending = new AbortController()
      const stopped = Promise.withResolvers<never>()
      const stop = (error: ConnectError) => {
        ending.abort(error)
        stopped.reject(error)
      }
      const cancel = () => stop(new ConnectError('the call was cancelled', Code.Canceled))
      const expire = () => stop(new ConnectError('the deadline has passed', Code.DeadlineExceeded))
      const timer = timeoutMs !== undefined && timeoutMs > 0 ? setTimeout(expire, timeoutMs) : undefined
      signal?.addEventListener('abort', cancel)
      if (signal?.aborted) cancel()
      const running = found.run({
        header: new Headers(header),
        timeoutMs,
        message: () => create(method.input, input),
        signal: () => ending.signal,
      })
      try {
        const message = await Promise.race([running, stopped.promise])
        const service = method.parent
        return { stream: false, service, method, header: new Headers(), trailer: new Headers(), message } as never
      } finally {
        clearTimeout(timer)
        signal?.removeEventListener('abort', cancel)
      }
    },
  }
}
