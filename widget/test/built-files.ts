import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buildWidgetIfStale, widgetDist } from '../build.ts'

/** What a server gives out at `/widget.js` and below `/widget/`; undefined for any other path. Builds where that is due. */
export async function builtFile(path: string): Promise<Buffer | undefined> {
  if (!/^\/(widget\.js|widget\/[\w-]+\.js)$/.test(path)) return undefined
  await buildWidgetIfStale()
  return readFile(join(widgetDist, path)).catch(() => undefined)
}
