import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buildWidgetIfStale, widgetDist } from '../build.ts'

/**
 * Returns the built file at `/widget.js` or below `/widget/`. Undefined for other paths. Builds
 * first if a source has changed.
 */
export async function builtFile(path: string): Promise<Buffer | undefined> {
  if (!/^\/(widget\.js|widget\/v1\/\w+\/[\w-]+\.js)$/.test(path)) return undefined
  await buildWidgetIfStale()
  return readFile(join(widgetDist, path)).catch(() => undefined)
}
