/** Release or commit to rehearse from instead of the recorded releases. */
export const rehearsalFrom = (): string | undefined => process.env.REHEARSAL_FROM
