/** Returns an unsigned assertion for a fake server that does not verify signatures. */
export function assertionOf(sub: string, name?: string): string {
  return `e30.${btoa(JSON.stringify({ sub, name })).replaceAll('=', '')}.c2ln`
}
