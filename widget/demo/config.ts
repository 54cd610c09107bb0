/** The demo site's settings. Errors: one that names the setting and what is allowed. */
export function readDemoConfig(env: NodeJS.ProcessEnv = process.env): { DEMO_PORT: number } {
  const port = Number(env.DEMO_PORT || 8081)
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new Error('DEMO_PORT must be a whole number, 0 or more, 65535 at most')
  return { DEMO_PORT: port }
}
