import { createBrowserCall } from './browser-calls.ts'
import { configFindings } from './browser-checks.ts'
import { connectionFindings } from './connection-checks.ts'
import { type Finding, fault } from './findings.ts'
import { streamFindings } from './stream-checks.ts'

interface Examined {
  url: URL
  siteKey: string
  origin: string
  openMs: number
}

/**
 * Opens the public URL as a browser on a page of the origin does. A group of checks returns false if a fault
 * leaves nothing for the next one to check.
 */
export async function* examine({ url, siteKey, origin, openMs }: Examined): AsyncGenerator<Finding> {
  const call = createBrowserCall(url, origin)
  const groups = [
    () => connectionFindings(url),
    () => configFindings(call, url, siteKey, origin),
    () => streamFindings(call, siteKey, openMs),
  ]
  for (const group of groups) {
    try {
      if (!(yield* group())) return
    } catch (error) {
      yield fault(`no answer: ${causeOf(error)}. Check the proxy, and that a gateway is ready behind it`)
      return
    }
  }
}

function causeOf(error: unknown) {
  const { cause, message } = error as Error
  return cause instanceof Error ? cause.message : message
}
