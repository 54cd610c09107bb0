import { defineSettings, filledText, port } from '../platform/settings/settings.ts'
import texts from './settings.json' with { type: 'json' }

/** Settings of `npm start`, `npm run core`, `npm run migrate` and `npm run make -- token`. */
export const devSettings = defineSettings(
  { DATA_DIR: filledText('.data'), NODE_ENV: filledText('development'), DEMO_PORT: port(8081) },
  texts,
)

export type DevConfig = ReturnType<typeof devSettings.read>

export const readDevConfig = (): DevConfig => devSettings.read(process.env)
