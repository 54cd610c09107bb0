import type { ScreenshotStore } from '../commands/screenshot-store.ts'
import type { VisitorDataStore } from './visitor-data-store.ts'
import type { VisitorName, VisitorTraceStore } from './visitor-traces-store.ts'

export interface VisitorExport {
  /** All data of a visitor, one JSON object per line; screenshots in base64. */
  lines(visitor: VisitorName): AsyncIterable<string>
}

export function createVisitorExport(dependencies: {
  traces: VisitorTraceStore
  data: VisitorDataStore
  files: Pick<ScreenshotStore, 'read'>
  now: () => number
}): VisitorExport {
  const { traces, data, files, now } = dependencies

  async function screenshotOf(commandId: unknown, fileId: string) {
    const chunks: Uint8Array[] = []
    for await (const chunk of files.read(fileId)) chunks.push(chunk)
    return { kind: 'screenshot', commandId, data: Buffer.concat(chunks).toString('base64') }
  }

  return {
    async *lines(visitor) {
      for await (const { screenshot, ...record } of data.read(await traces.find(visitor, { until: new Date(now()) }))) {
        if (screenshot === undefined) {
          yield JSON.stringify(record)
          continue
        }
        const { fileId, uploadKey: _, ...described } = screenshot as { fileId: string; uploadKey: string }
        yield JSON.stringify({ ...record, screenshot: described })
        yield JSON.stringify(await screenshotOf(record.commandId, fileId))
      }
    },
  }
}
