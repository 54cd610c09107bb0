/** Release or commit that replaces the last release in rehearsals. */
export const rehearsalFrom = (): string | undefined => process.env.REHEARSAL_FROM
