import { join } from 'node:path'

/** What tests use of the widget's client, whose code has the types of browsers. */
export interface Widget {
  start(): Promise<void>
  stop(): void
  session(): { conversationId: string } | undefined
  messages(): { body: string; messageId?: string }[]
  sendMessage(body: string): void
  unread(): number
  markRead(): void
  resetVisitor(what: { clearHistory: true }): Promise<void>
}
const { createServiceClient } = await import(join(import.meta.dirname, '../../widget/src/client/client.ts'))

/** Creates the client of a page, which has no browser. */
export function openWidget(site: { gatewayUrl: string; siteKey: string; origin: string }): Widget {
  const fromPage: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers)
    headers.set('Origin', site.origin)
    return fetch(input, { ...init, headers })
  }
  const items = new Map<string, string>()
  const storage = {
    getItem: (name: string) => items.get(name) ?? null,
    setItem: (name: string, value: string) => void items.set(name, value),
    removeItem: (name: string) => void items.delete(name),
  }
  const platform = { storage, fetch: fromPage }
  return createServiceClient({ siteKey: site.siteKey, apiBaseUrl: site.gatewayUrl, platform })
}
