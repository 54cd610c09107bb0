import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildWidgetIfStale, widgetDist } from '../build.ts'
import { drawLamps } from './lamp-art.ts'

const siteFolder = fileURLToPath(new URL('site/', import.meta.url))

const types: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

export interface SiteFile {
  type: string
  content: Buffer
}

/**
 * Every file of the shop by its path: its own, the lamps' pictures, and the built widget: `/widget.js` and what it loads
 * from `/widget/`. Builds the widget where its built files are missing or old.
 */
export async function readSiteFiles(): Promise<Map<string, SiteFile>> {
  await buildWidgetIfStale()
  const files = new Map([...(await readFolder(siteFolder, '/')), ...(await readFolder(widgetDist, '/'))])
  for (const [id, drawing] of drawLamps())
    files.set(`/art/${id}.svg`, { type: types['.svg']!, content: Buffer.from(drawing) })
  return files
}

async function readFolder(folder: string, path: string): Promise<[path: string, file: SiteFile][]> {
  const names = (await readdir(folder, { recursive: true })).filter(
    (name) => !name.startsWith('.') && extname(name) in types,
  )
  return Promise.all(
    names.map(async (name) => {
      const file = { type: types[extname(name)]!, content: await readFile(join(folder, name)) }
      return [path + name.replaceAll('\\', '/'), file] as [string, SiteFile]
    }),
  )
}
