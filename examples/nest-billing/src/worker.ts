/** One replica: answers by HTTP, and tells its parent where. */
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app-module.js';

const app = await NestFactory.create(AppModule, { logger: ['warn', 'error'] });
app.enableShutdownHooks();
await app.listen(Number(process.env['PORT'] ?? 0), '127.0.0.1');
process.send?.(await app.getUrl());
process.once('disconnect', () => process.exit());
