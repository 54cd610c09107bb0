import type { WidgetErrorDetail, WidgetEventMap, WidgetEventName } from './types.ts'

export type Handler<Payload> = (payload: Payload) => void

export interface Emitter {
  /** Returns a function that unsubscribes. A handler is called once per event. */
  on<Name extends WidgetEventName>(name: Name, handler: Handler<WidgetEventMap[Name]>): () => void
  /** Like `on`, for one event. */
  once<Name extends WidgetEventName>(name: Name, handler: Handler<WidgetEventMap[Name]>): () => void
  emit<Name extends WidgetEventName>(name: Name, payload: WidgetEventMap[Name]): void
}

/**
 * Creates an emitter. If a handler throws, the others are still called. By default, its error is an
 * uncaught one of the page.
 */
export function createEmitter(onHandlerError: (error: unknown) => void = reportUncaught): Emitter {
  const handlers = new Map<WidgetEventName, Set<Handler<never>>>()

  const on: Emitter['on'] = (name, handler) => {
    const set = handlers.get(name) ?? new Set()
    handlers.set(name, set)
    set.add(handler as Handler<never>)
    return () => set.delete(handler as Handler<never>)
  }

  return {
    on,
    once(name, handler) {
      const off = on(name, (payload) => {
        off()
        handler(payload)
      })
      return off
    },
    emit(name, payload) {
      const { code, recoverable } = payload as Partial<WidgetErrorDetail>
      // A failure that nobody hears of would be hard to find.
      if (name === 'error' && !recoverable && !handlers.get(name)?.size) console.error(`Chat: ${code}`)
      for (const handler of [...(handlers.get(name) ?? [])] as Handler<unknown>[]) {
        try {
          handler(payload)
        } catch (error) {
          onHandlerError(error)
        }
      }
    },
  }
}

function reportUncaught(error: unknown) {
  queueMicrotask(() => {
    throw error
  })
}
