import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '../..')

export const readDockerfile = () => readFile(join(root, 'Dockerfile'), 'utf8')
