"""The paper's experiments on its own data: one module each, on the public interface only."""
