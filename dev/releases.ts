import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** `releases.json` records releases, because clones may lack tags. */
export interface Release {
  version: string
  date: string
  /** Hash of the release's commit. Missing in that commit itself. */
  commit?: string
  /** SHA-256 of each published file. */
  sha256: Record<string, string>
}

const fileOf = (root: string) => join(root, 'releases.json')

/** Returns all releases, oldest first. */
export const readReleases = (root: string): Release[] => JSON.parse(readFileSync(fileOf(root), 'utf8'))

export const writeReleases = (root: string, releases: Release[]) =>
  writeFileSync(fileOf(root), `${JSON.stringify(releases, null, 2)}\n`)
