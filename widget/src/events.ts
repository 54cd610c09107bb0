export type Handler<Payload> = (payload: Payload) => void

export interface Emitter<Events> {
  /** Subscribes; the answer unsubscribes. The same handler subscribed twice is called once. */
  on<Name extends keyof Events>(name: Name, handler: Handler<Events[Name]>): () => void
  emit<Name extends keyof Events>(name: Name, payload: Events[Name]): void
}

/**
 * A typed emitter. A handler that throws does not keep the others from being called: its error goes to `onHandlerError`,
 * by default as an uncaught error of the page.
 */
export function createEmitter<Events>(onHandlerError: (error: unknown) => void = reportUncaught): Emitter<Events> {
  const handlers = new Map<keyof Events, Set<Handler<never>>>()

  return {
    on(name, handler) {
      const set = handlers.get(name) ?? new Set()
      handlers.set(name, set)
      set.add(handler as Handler<never>)
      return () => set.delete(handler as Handler<never>)
    },
    emit(name, payload) {
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
