// `npm run test:quick`: SQLite, no browser, nothing killed.

export const quick_variable = 'WAYSTATION_TEST_QUICK'
export const quick = process.env[quick_variable] === '1'
